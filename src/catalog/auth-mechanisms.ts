import { createRegistry } from '#kernel/registry.ts'
import anonymous from '#modules/auth-mechanisms/anonymous/anonymous.ts'
import authorization from '#modules/auth-mechanisms/authorization/authorization.ts'
import bearerToken from '#modules/auth-mechanisms/bearer-token/bearer-token.ts'
import formLogin from '#modules/auth-mechanisms/form-login/form-login.ts'
import generateOidcTokens from '#modules/auth-mechanisms/generate-oidc-tokens/generate-oidc-tokens.ts'
import includeChain from '#modules/auth-mechanisms/include-chain/include-chain.ts'
import jitProvision from '#modules/auth-mechanisms/jit-provision/jit-provision.ts'
import loginService from '#modules/auth-mechanisms/login-service/login-service.ts'
import mapping from '#modules/auth-mechanisms/mapping/mapping.ts'
import oauth2Jwt from '#modules/auth-mechanisms/oauth2-jwt/oauth2-jwt.ts'
import oauth2K8sServiceAccount from '#modules/auth-mechanisms/oauth2-k8s-service-account/oauth2-k8s-service-account.ts'
import openIdConnect from '#modules/auth-mechanisms/openid-connect/openid-connect.ts'
import passkey from '#modules/auth-mechanisms/passkey/passkey.ts'
import plugin from '#modules/auth-mechanisms/plugin/plugin.ts'
import serviceAccount2Claims from '#modules/auth-mechanisms/service-account-2-claims/service-account-2-claims.ts'
import totp from '#modules/auth-mechanisms/totp/totp.ts'

/** To add a mechanism, add one import above and one line below. */
export const authMechanisms = createRegistry('authentication mechanism', [
  anonymous,
  authorization,
  bearerToken,
  formLogin,
  generateOidcTokens,
  includeChain,
  jitProvision,
  loginService,
  mapping,
  oauth2Jwt,
  oauth2K8sServiceAccount,
  openIdConnect,
  passkey,
  plugin,
  serviceAccount2Claims,
  totp,
])
