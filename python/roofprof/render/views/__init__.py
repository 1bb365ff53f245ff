"""The content of pictures and pages of a report, as plain data: no drawing, and no figure that the report lacks."""
