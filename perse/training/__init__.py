"""Fine-tuning open models on personalized instruction data."""
