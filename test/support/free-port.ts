export { freePort } from '../../dev/ports';
