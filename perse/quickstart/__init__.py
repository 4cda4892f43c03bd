"""From a person's own files to a trained, evaluated judge, by the commands that they would type themselves."""
