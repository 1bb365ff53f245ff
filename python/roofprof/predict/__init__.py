"""Times on other devices, predicted from counts; docs/prediction.md has the model and its errors."""
