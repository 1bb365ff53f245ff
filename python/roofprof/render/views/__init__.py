"""What pictures and pages show of a report, as plain data: no drawing, and no figure that the report does not have."""
