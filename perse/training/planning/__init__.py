"""The memory, disk space and time that training needs."""
