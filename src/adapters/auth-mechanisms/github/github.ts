import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { parameters, parseGitHub } from './parameters.ts'

/** A login at GitHub (OAuth 2, code flow with state and PKCE), with the orgs and teams of the user. */
export default defineAuthMechanism({
  className: 'auth.GitHub',
  aliases: ['com.tremolosecurity.unison.proxy.auth.github.GithubAuthMech'],
  parameters,
  interactive: true,
  parse: parseGitHub,
  /** Loaded on first use: a gateway without this mechanism starts sooner. */
  create: async (config, host) => {
    const { GitHubLogin } = await import('./github-login.ts')
    return new GitHubLogin(config, host)
  },
})
