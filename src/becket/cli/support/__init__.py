"""Code that several commands share: options, output, prompts and exit codes."""
