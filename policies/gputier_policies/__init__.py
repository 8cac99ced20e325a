"""Rules that judge resources, whoever made them. Empty until the guardrails release."""
