"""Local stand-ins for the services that a node asks, strict where the real ones are.

Metadata (AWS, Google, Azure), object storage, Auto Scaling, Compute Engine: threaded servers of the
standard library, on any address, with faults on order. Tests start them on 127.0.0.1; a rehearsal
on the metadata address of a network of its own, or from the command line:

    python -m tests.standins metadata --bind 127.0.0.1:8001 --config '{"cloud": "aws"}'
"""
