export { freePort } from '../../dev/free-port';
