"""What runs under `accelerate launch`. The one way in is `-m training.train`."""
