"""The stages of the Murphy workflow.

Each stage is a package that runs alone (``python -m stages.execute --help``), reads files and writes files. A stage
imports no other stage; what two of them share lives in :mod:`stages.common`.
"""
