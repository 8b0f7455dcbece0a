import { GatewayError } from '#kernel/errors.ts'

/** A value that the API cannot be given, told by its name; the value itself is not repeated. */
export const refusedValue = (name: string, reason: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `"${name}" ${reason}`, {
    publicText: `The value of ${name} cannot be stored: it ${reason}.`,
    keyword: 'invalidValue',
  })
