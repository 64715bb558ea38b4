mod crash;
mod flow;
mod world;
