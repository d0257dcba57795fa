"""Files that run inside the sandboxes. Standard library only; they are bound read-only and never import `stages`."""
