"""Review: what a change costs and risks, from what `pulumi preview` says of any program."""
