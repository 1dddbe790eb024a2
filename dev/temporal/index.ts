export { findTemporal } from './executable';
export { stopTemporalLeftovers } from './leftovers';
export { type RunningTemporal, startTemporal, temporalDataFile, type TemporalOptions } from './start';
