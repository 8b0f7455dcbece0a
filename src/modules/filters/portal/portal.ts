import { GatewayError } from '#kernel/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import { htmlErrors } from '#sdk/filter/page.ts'
import { choice, parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { assetAnswer } from './asset-answer.ts'
import { type BuiltPortal, readBuiltPortal } from './built-portal.ts'
import { captchas, portalPage } from './portal-page.ts'

const parameters = {
  main: parsed('path', readPath, {
    about:
      'Where filters.Main is: a path of this host. Without it, there is the registration form alone, for everybody.',
  }),
  sessionCheck: parsed('path', readPath, {
    about: 'Path of filters.CheckSession. Without it, users are not warned before the session ends.',
  }),
  register: parsed('path', readPath, { about: 'Path of filters.Register. Without it, there is no such page.' }),
  token: parsed('path', readPath, { about: 'Path of filters.TokenApi. Without it, there is no such page.' }),
  account: parsed('path', readPath, { about: 'Path of filters.Account. Without it, there is no such page.' }),
  captcha: choice(captchas, {
    about: 'The provider whose scripts pages may load, if filters.Register uses its human check.',
    fallback: 'none',
  }),
  title: text({ about: 'What the browser shows until `headerTitle` of filters.Main is known.', fallback: 'Gatehouse' }),
}

/** A path of this host, without the slash at its end. Throws an Error for anything that could lead elsewhere. */
function readPath(written: string): string {
  if (!/^\/(?!\/)[\w\-.~%/]*$/.test(written) || written.includes('/..')) {
    throw new Error(`must be a path of this host such as /portal/main, not "${written}"`)
  }
  return written.replace(/\/+$/, '')
}

/** Serves the single-page portal: one page for every address below the mount, and its assets. */
export default defineFilter({
  className: 'filters.Portal',
  parameters,
  answers: true,
  errors: htmlErrors,
  // A page whose session has ended still has to load its parts.
  openPaths: ['/assets/'],
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.main === undefined && given.register === undefined) {
      issues.error(params.pathOf('main'), 'parameter "main" is required, or "register" for the registration form alone')
    }
    return given
  },
  summarize: ({ main, register = '' }) => [{ label: 'API', value: main ?? register }],
  create: async ({ main, sessionCheck, register, token, account, captcha, title }) => {
    const portal = await readBuiltPortal()
    const apis = {
      ...(main === undefined ? {} : { main }),
      ...(sessionCheck === undefined ? {} : { sessionCheck }),
      ...(register === undefined ? {} : { register }),
      ...(token === undefined ? {} : { token }),
      ...(account === undefined ? {} : { account }),
    }
    return {
      handle: async ({ request, mount, pathInfo }) => {
        requireReading(request)
        const asset = assetOf(portal, request, pathInfo)
        if (asset !== undefined) return asset
        requireNavigation(request, pathInfo)
        return portalPage(portal.page, { base: mount, title, apis }, captcha)
      },
    }
  },
})

function requireReading({ method }: GatewayRequest): void {
  if (method !== 'GET' && method !== 'HEAD') {
    throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: 'GET, HEAD' } })
  }
}

/** A browser on its way to a page, as opposed to a script or an image that is missing. */
function requireNavigation(request: GatewayRequest, pathInfo: string): void {
  if (pathInfo === '' || pathInfo === '/' || header(request, 'sec-fetch-mode') === 'navigate') return
  if (header(request, 'accept')?.includes('text/html') === true) return
  throw new GatewayError('NOT_FOUND', `there is no page at "${pathInfo}"`)
}

const assetPath = /^\/assets\/(.*)$/

/** Undefined where it is not an asset that is asked for. */
function assetOf(portal: BuiltPortal, request: GatewayRequest, pathInfo: string): Promise<GatewayResponse> | undefined {
  const name = assetPath.exec(pathInfo)?.[1]
  if (name === undefined) return undefined
  const asset = portal.assets.get(name)
  if (asset === undefined) throw new GatewayError('NOT_FOUND', `no asset "${name}"`)
  return assetAnswer(asset, header(request, 'accept-encoding') ?? '')
}
