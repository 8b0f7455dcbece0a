import { allowMethods } from '#sdk/api/routes.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/**
 * The end of a URL that only exists for its chain, which auth.LoginService takes by the path of the URL. The chosen
 * chain runs in the user's own login, so only a user who opens the address directly arrives here.
 */
export default defineFilter({
  className: 'filters.CompleteLogin',
  aliases: ['com.tremolosecurity.prelude.filters.CompleteLogin'],
  ...withParameters({}),
  answers: true,
  create: () => ({
    async handle({ request }) {
      allowMethods(request.method, 'GET', 'HEAD')
      return seeOther('/')
    },
  }),
})
