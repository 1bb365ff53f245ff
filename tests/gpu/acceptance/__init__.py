"""What a GPU has to confirm: each module here is a part, run as a process of its own by ../run.sh.

`checks` and `closed_forms` are plain arithmetic, `summary` puts the parts' results together; tests/python tests these
without a GPU. `python -m acceptance PART FOLDER` runs one part.
"""
