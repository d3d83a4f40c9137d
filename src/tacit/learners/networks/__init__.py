"""Networks trained by noisy gradients of single records."""
