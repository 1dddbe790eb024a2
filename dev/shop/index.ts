export { type RunningShop, type ShopOptions, startShop } from './start';
export type { PartnerSettings } from '../partner-api';
