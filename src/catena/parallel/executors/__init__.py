"""What runs the programs of the devices of a mesh."""
