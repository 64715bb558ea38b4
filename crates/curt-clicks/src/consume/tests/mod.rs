mod crash;
mod flow;
mod trouble;
mod world;
