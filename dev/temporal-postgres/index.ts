export { startTemporalPostgres, type RunningTemporalPostgres, type TemporalPostgresOptions } from './start';
