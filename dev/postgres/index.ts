export { stopLeftovers } from './leftovers';
export { type PostgresOptions, type RunningPostgres, startPostgres } from './start';
