import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/**
 * Allows members of an org (`org/`) or team (`org/team`) that a rule names, by the attributes of auth.GitHub. A rule
 * that names none allows no one. GitHub ignores the letter case of orgs and teams.
 */
export default defineAuthorization({
  className: 'authorizations.GitHubTeams',
  aliases: ['com.tremolosecurity.unison.proxy.auth.github.GithubTeamRule'],
  ...withParameters({}),
  create: () => ({
    isAuthorized: ({ attributes }, params) => {
      const has = (name: string, value: string): boolean =>
        attributes.values(name).some((one) => one.toLowerCase() === value.toLowerCase())
      return params.some((param) => {
        const [org = '', ...team] = param.split('/')
        if (org === '') return false
        return param.endsWith('/') && team.length === 1
          ? has('githubOrgs', org)
          : team.length > 0 && has('githubTeams', param)
      })
    },
  }),
})
