"""What is within reach of a call, and how it is put back."""
