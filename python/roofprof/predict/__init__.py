"""Times on devices that are not at hand, from what was counted; docs/prediction.md has the model and its errors."""
