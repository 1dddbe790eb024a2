export * from './parties';
export * from './catalogue';
export * from './applications';
export * from './notifications';
export * from './deliveries';
export * from './webhooks';
export * from './audit';
export * from './processes';
