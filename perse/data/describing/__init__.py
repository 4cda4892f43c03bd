"""What raw files hold, before anything is built of them."""
