import { GatewayError } from '#kernel/errors.ts'

/**
 * Calls a script that decides about a request. If the script fails, the request gets a 500, with the details in the log;
 * a system that the script could not reach stays a 503.
 */
export async function failClosed<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (cause) {
    const isScript = cause instanceof GatewayError && !['TARGET_UNREACHABLE', 'SHUTTING_DOWN'].includes(cause.code)
    throw isScript ? new GatewayError('INTERNAL', cause.message, { cause }) : cause
  }
}
