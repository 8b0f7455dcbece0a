import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { PortalSettings } from '#features/portal/contract/portal.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { escapeHtml } from '#kernel/text/html.ts'
import { readPageUrl } from '#sdk/api/page-url.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { choice, parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { htmlErrors } from '#sdk/page/page.ts'
import { pictureUri, readPictureUri } from '#sdk/page/picture.ts'

const settingsBlock = /(<script id="settings" type="application\/json">)(<\/script>)/
const title = /<title>[^<]*<\/title>/

const captchas = ['none', 'recaptcha', 'turnstile'] as const
type Captcha = (typeof captchas)[number]

/** Where the scripts and frames of the providers come from, to append to other sources. */
const captchaSources: Readonly<Record<Captcha, string>> = {
  none: '',
  recaptcha: ' https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/',
  turnstile: ' https://challenges.cloudflare.com',
}

/**
 * The page of every URL below the mount. Each visit gets its own, since a nonce admits its styles; scripts load from
 * this host only, and never from inside the page.
 */
export function portalPage(
  template: string,
  settings: Omit<PortalSettings, 'nonce'>,
  captcha: Captcha = 'none',
): GatewayResponse {
  const others = captchaSources[captcha]
  const nonce = randomBytes(18).toString('base64')
  const json = JSON.stringify({ ...settings, nonce } satisfies PortalSettings).replaceAll('<', '\\u003c')
  const body = template
    .replaceAll('="./', () => `="${escapeHtml(settings.base)}/`)
    .replace(title, () => `<title>${escapeHtml(settings.title)}</title>`)
    .replace(settingsBlock, (_, open: string, close: string) => open + json + close)
  const policy = [
    "default-src 'none'",
    `script-src 'self'${others}`,
    ...(others === '' ? [] : [`frame-src${others}`]),
    `style-src 'self' 'nonce-${nonce}'`,
    // Icons of links are part of the answer that lists them.
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${others}`,
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy.join('; '),
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    },
    body,
  }
}

const parameters = {
  main: parsed('path', readPath, {
    about:
      'Path of [filters.Main](filters.Main.md) on this host. Without it, there is the registration form alone, for everyone.',
    requirement: 'unless `register` is there',
  }),
  sessionCheck: parsed('path', readPath, {
    about:
      'Path of [filters.CheckSession](filters.CheckSession.md). Without it, users are not warned before the session ends.',
  }),
  register: parsed('path', readPath, {
    about: 'Path of [filters.Register](filters.Register.md). Without it, the portal does not show that page.',
  }),
  token: parsed('path', readPath, {
    about: 'Path of [filters.TokenApi](filters.TokenApi.md). Without it, the portal does not show that page.',
  }),
  account: parsed('path', readPath, {
    about: 'Path of [filters.Account](filters.Account.md). Without it, the portal does not show that page.',
  }),
  url: parsed('web address', readPageUrl, {
    about:
      'The address of the portal as users reach it, such as `https://gateway.example.com/portal`. Mails and channels link to its pages; without it, they have no such links.',
  }),
  captcha: choice(captchas, {
    about: 'The provider whose scripts pages may load, if filters.Register uses its human check.',
    fallback: 'none',
  }),
  logo: text({
    about:
      'The logo beside the name: a file below the configuration folder, or a data URI. A PNG, JPEG, WebP or SVG of at most 64 KB.',
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
  // A page whose session has ended must still load its parts.
  openPaths: ['/assets/'],
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.main === undefined && given.register === undefined) {
      issues.error(params.pathOf('main'), 'parameter "main" is required, or "register" for the registration form alone')
    }
    return { ...given, logo: readLogo(given.logo, params, issues, context) }
  },
  portalUrl: ({ main, url }) => (main === undefined ? undefined : url?.replace(/\/+$/, '')),
  summarize: ({ main, register = '' }) => [{ label: 'API', value: main ?? register }],
  look: ({ logo }) => (logo === undefined ? {} : { logo }),
  create: async ({ main, sessionCheck, register, token, account, captcha, title, logo }) => {
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
        return portalPage(portal.page, { base: mount, title, logo, apis }, captcha)
      },
    }
  },
})

function requireReading({ method }: GatewayRequest): void {
  allowMethods(method, 'GET', 'HEAD')
}

/** A browser on its way to a page, as opposed to a script or an image that is missing. */
function requireNavigation(request: GatewayRequest, pathInfo: string): void {
  if (pathInfo === '' || pathInfo === '/' || header(request, 'sec-fetch-mode') === 'navigate') return
  if (header(request, 'accept')?.includes('text/html') === true) return
  throw new GatewayError('NOT_FOUND', `there is no page at "${pathInfo}"`)
}

const assetPath = /^\/assets\/(.*)$/

/** Undefined if the request is not for an asset. */
function assetOf(portal: BuiltPortal, request: GatewayRequest, pathInfo: string): Promise<GatewayResponse> | undefined {
  const name = assetPath.exec(pathInfo)?.[1]
  if (name === undefined) return undefined
  const asset = portal.assets.get(name)
  if (asset === undefined) throw new GatewayError('NOT_FOUND', `no asset "${name}"`)
  return assetAnswer(asset, header(request, 'accept-encoding') ?? '')
}

/** A year: an asset's name changes with its content. */
const cacheControl = 'public, max-age=31536000, immutable'

const unpack = promisify(gunzip)
/** Unpacked once for all clients, so that many cost no more than one. */
const unpacked = new WeakMap<Buffer, Promise<Buffer>>()

function plainOf(packed: Buffer): Promise<Buffer> {
  const known = unpacked.get(packed) ?? unpack(packed)
  unpacked.set(packed, known)
  return known
}

/** The smallest copy that the browser accepts. */
export async function assetAnswer(asset: Asset, acceptEncoding: string): Promise<GatewayResponse> {
  const accepted = acceptedCodings(acceptEncoding)
  const [coding, body] =
    asset.br !== undefined && accepted.has('br')
      ? ['br', asset.br]
      : asset.gzip !== undefined && accepted.has('gzip')
        ? ['gzip', asset.gzip]
        : [undefined, asset.gzip === undefined ? asset.plain : await plainOf(asset.gzip)]
  return {
    status: 200,
    headers: {
      'content-type': asset.type,
      'cache-control': cacheControl,
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      ...(coding === undefined ? {} : { 'content-encoding': coding }),
    },
    body,
  }
}

function acceptedCodings(header: string): ReadonlySet<string> {
  const codings = header.toLowerCase().split(',')
  return new Set(
    codings.flatMap((one) => {
      const [name = '', ...parameters] = one.split(';').map((part) => part.trim())
      return parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [name]
    }),
  )
}

/** The output of `npm ci`, as it is served. */
interface BuiltPortal {
  /** The page, with addresses that start with `./` and an empty block for the settings. */
  readonly page: string
  /** By file name; every name contains a hash of the content. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** Files are compressed or plain; compressed ones are unpacked for the few clients that need it. */
type Asset = { readonly type: string; readonly br?: Buffer } & (
  | { readonly gzip: Buffer }
  | { readonly plain: Buffer; readonly gzip?: undefined }
)

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
  woff2: 'font/woff2',
  png: 'image/png',
}

const built = fileURLToPath(new URL('../../../../portal/dist/', import.meta.url))

/**
 * Reads the whole build into memory, since it is small. The page comes first: a build that replaces it meanwhile leaves
 * its assets. Throws if there is none.
 */
export async function readBuiltPortal(folder = built): Promise<BuiltPortal> {
  try {
    const page = await readFile(`${folder}index.html`, 'utf8')
    const names = await readdir(`${folder}assets`)
    const assets = new Map<string, Asset>()
    for (const name of names) {
      const type = types[name.split('.').at(-1) ?? '']
      if (type === undefined) continue
      const read = (end: string) => ifThere(`${folder}assets/${name}${end}`)
      const [br, gzip] = await Promise.all([read('.br'), read('.gz')])
      const plain = gzip === undefined ? await read('') : undefined
      if (gzip !== undefined) assets.set(name, { type, gzip, ...(br && { br }) })
      else if (plain !== undefined) assets.set(name, { type, plain, ...(br && { br }) })
    }
    return { page, assets }
  } catch (cause) {
    throw new GatewayError('INTERNAL', 'the portal was not built: run "npm ci" with development dependencies', {
      cause,
    })
  }
}

/** An asset of an old build may disappear while the others are read. */
async function ifThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw cause
  }
}

/** The logo as a data URI; undefined if there is none, or if it is invalid, which is reported. */
function readLogo(
  written: string | undefined,
  params: Params,
  issues: Issues,
  context: ParseContext,
): string | undefined {
  if (written === undefined || written === '') return undefined
  try {
    if (written.startsWith('data:')) return readPictureUri(written)
    if (context.readFile === undefined) throw new Error('must be a data URI, since there are no files here')
    return pictureUri(Buffer.from(context.readFile(resolve(context.folder, written), 'base64'), 'base64'))
  } catch (error) {
    issues.error(params.pathOf('logo'), `"logo": ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}
