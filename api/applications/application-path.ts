import { ApiError } from '../errors';

/** The path parameter of an application's routes. */
export interface ApplicationPath {
  Params: { readonly credit_application_id: string };
}

const APPLICATION_ID = /^app_[0-9A-HJKMNP-TV-Z]{26}$/;

export const noSuchApplication = () =>
  new ApiError('APPLICATION_NOT_FOUND', 'The application does not exist.', {
    field: 'credit_application_id',
  });

/** The application that a path names. @throws ApiError when it can be none: then nobody is asked. */
export function applicationIdOf({ credit_application_id: id }: ApplicationPath['Params']): string {
  if (!APPLICATION_ID.test(id)) throw noSuchApplication();
  return id;
}
