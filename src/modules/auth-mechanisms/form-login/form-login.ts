import { Dn } from '#identity/dn.ts'
import { type FilterTemplate, parseFilterTemplate } from '#identity/filter/filter-template.ts'
import type { Issues } from '#kernel/issues.ts'
import { DirectoryLogin } from '#modules/auth-mechanisms/form-login/directory-login.ts'
import { LoginForm } from '#modules/auth-mechanisms/form-login/login-form.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { defaultTheme, parseColour } from '#sdk/filter/page.ts'
import { flag, parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'

const parameters = {
  uidAttr: text({
    about:
      'The attribute that holds the login; with `uidIsFilter` the filter, such as `(|(uid=${user})(mail=${user}))`.',
    fallback: 'uid',
  }),
  uidIsFilter: flag({ about: '`"true"`: `uidAttr` is an RFC 4515 filter in which `${user}` is what was typed.' }),
  title: text({ about: 'The heading of the login page.', fallback: 'Sign in' }),
  userLabel: text({ about: 'The label of the login field.', fallback: 'User name' }),
  forgotPasswordURL: parsed('address', parseAddress, {
    about:
      'Where the link “Forgot your password?” leads: a path of this host, or an http or https address. No link when absent.',
  }),
  themePrimaryMain: parsed('colour', parseColour, { about: 'The colour of the page, as `#rrggbb`.' }),
  themePrimaryDark: parsed('colour', parseColour, { about: 'Its darker shade.' }),
  FORMLOGIN_JSP: text({ about: 'Accepted and not used: the login page is part of Gatehouse.' }),
}

/** A form for login and password, which are checked by the virtual directory. */
export default defineAuthMechanism({
  className: 'auth.FormLogin',
  aliases: ['com.tremolosecurity.proxy.auth.FormLoginAuthMech'],
  parameters,
  interactive: true,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.FORMLOGIN_JSP !== undefined) {
      issues.warning(params.pathOf('FORMLOGIN_JSP'), 'not used: the login page is part of Gatehouse')
    }
    const { title, userLabel, forgotPasswordURL, themePrimaryMain: main, themePrimaryDark: dark } = given
    return {
      lookup: parseLookup(given, params, issues),
      uidAttr: given.uidIsFilter ? 'uid' : given.uidAttr,
      page: {
        title,
        userLabel,
        forgotPasswordURL,
        theme: { main: main ?? defaultTheme.main, dark: dark ?? defaultTheme.dark },
      },
    }
  },
  create: ({ lookup, uidAttr, page }, host) => {
    if (lookup === undefined) throw new Error('the look-up did not parse')
    return new LoginForm(page, new DirectoryLogin(lookup, uidAttr, host))
  },
})

function parseAddress(written: string): string {
  const isPath = /^\/(?![/\\])/.test(written)
  if (!isPath && !(URL.canParse(written) && /^https?:$/.test(new URL(written).protocol))) {
    throw new Error('must be a path of this host, or an http or https address')
  }
  return written
}

/** What is typed only ever becomes a value of the filter. */
function parseLookup(
  { uidAttr, uidIsFilter }: ParsedParameters<typeof parameters>,
  params: Params,
  issues: Issues,
): FilterTemplate | undefined {
  const at = params.pathOf('uidAttr')
  try {
    if (!uidIsFilter) Dn.of([uidAttr, 'x'])
    const lookup = parseFilterTemplate(uidIsFilter ? uidAttr : `(${uidAttr}=\${user})`)
    const [unknown] = [...lookup.placeholders].filter((name) => name !== 'user')
    if (unknown === undefined && lookup.placeholders.size === 1) return lookup
    issues.error(
      at,
      unknown === undefined
        ? '"uidAttr": the filter must contain ${user}; without it, every login would find the same user'
        : `"uidAttr": the form has no field "${unknown}", only \${user}`,
    )
  } catch (error) {
    issues.error(at, `"uidAttr": ${error instanceof Error ? error.message : String(error)}`)
  }
  return undefined
}
