import { createRegistry } from '#kernel/registry.ts'
import anonymous from '#modules/auth-mechanisms/anonymous/anonymous.ts'
import authorization from '#modules/auth-mechanisms/authorization/authorization.ts'
import includeChain from '#modules/auth-mechanisms/include-chain/include-chain.ts'
import oauth2Jwt from '#modules/auth-mechanisms/oauth2-jwt/oauth2-jwt.ts'
import oauth2K8sServiceAccount from '#modules/auth-mechanisms/oauth2-k8s-service-account/oauth2-k8s-service-account.ts'
import plugin from '#modules/auth-mechanisms/plugin/plugin.ts'
import serviceAccount2Claims from '#modules/auth-mechanisms/service-account-2-claims/service-account-2-claims.ts'

/** Add a mechanism: one import above, one line below. */
export const authMechanisms = createRegistry('authentication mechanism', [
  anonymous,
  authorization,
  includeChain,
  oauth2Jwt,
  oauth2K8sServiceAccount,
  plugin,
  serviceAccount2Claims,
])
