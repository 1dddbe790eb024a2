export { findTemporal } from './executable';
export {
  type RunningTemporal,
  startTemporal,
  stopTemporalLeftovers,
  temporalDataFile,
  type TemporalOptions,
} from './start';
