/** A partner in one of its environments: whoever owns a key, an endpoint, a key pair, a notification. */
export interface Tenant {
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
}
