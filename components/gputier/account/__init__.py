"""Account: what the user's own cloud account answers, asked live with the stack's own identity."""
