/** A partner in one of its environments: the owner of keys, endpoints, key pairs and notifications. */
export interface Tenant {
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
}
