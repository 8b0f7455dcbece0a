import { createRegistry } from '#kernel/registry.ts'
import alwaysFail from '#modules/authorizations/always-fail/always-fail.ts'
import javaScriptAuthorization from '#modules/authorizations/javascript-authorization/javascript-authorization.ts'

/** Add an authorization: one import above, one line below. */
export const authorizations = createRegistry('authorization', [alwaysFail, javaScriptAuthorization])
