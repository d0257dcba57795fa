"""The execute stage: runs the code of completions against their tests in sandboxes, answer-blind where tests allow."""
