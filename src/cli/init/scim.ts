import { hash, randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type CommandOutput, commandName, defineCommand, WrongUsage } from '#cli/command-line/command-line.ts'
import { outputOption } from '#cli/command-line/options.ts'
import { scimGatewayYaml } from '#features/scim/tenants/scim-gateway-yaml.ts'
import { defaultTenantPath, tenantNameProblem } from '#features/scim/tenants/tenant.ts'
import { fillTemplate } from '#kernel/text/fill-template.ts'
import { folderCommands, quoted } from './folder-commands.ts'

/** What to enter in a product, so that it calls the gateway. */
interface ScimClientSetup {
  /** The product's usual name. */
  readonly title: string
  /** Where in the product the fields are, or what to configure instead of a product. */
  readonly place: string
  readonly fields: readonly (readonly [label: string, value: string])[]
}

/** Placeholders in `fields`. */
const [address, token] = ['{address}', '{token}']

/** By the value of `client` of filters.ScimGateway; `generic` for the one that works with all. */
const scimClientSetups = {
  entra: {
    title: 'Microsoft Entra ID',
    place: 'Microsoft Entra ID, under Enterprise applications > your application > Provisioning',
    fields: [
      ['Provisioning Mode', 'Automatic'],
      ['Tenant URL', `${address}?aadOptscim062020`],
      ['Secret Token', token],
    ],
  },
  okta: {
    title: 'Okta',
    place: 'Okta, under Applications > your application > Provisioning > Integration',
    fields: [
      ['SCIM connector base URL', address],
      ['Unique identifier field for users', 'userName'],
      ['Authentication Mode', 'HTTP Header'],
      ['Authorization', token],
    ],
  },
  sailpoint: {
    title: 'SailPoint',
    place: 'SailPoint, under Admin > Connections > Sources > Create New, connector SCIM 2.0',
    fields: [
      ['Base URL', address],
      ['Authentication type', 'API Token'],
      ['API Token', token],
    ],
  },
  onelogin: {
    title: 'OneLogin',
    place: 'OneLogin, under Applications > SCIM Provisioner with SAML (SCIM v2 Enterprise) > Configuration',
    fields: [
      ['SCIM Base URL', address],
      ['SCIM Bearer Token', token],
    ],
  },
  jumpcloud: {
    title: 'JumpCloud',
    place: 'JumpCloud, under SSO Applications > your custom application > Identity Management',
    fields: [
      ['SCIM Version', 'SCIM 2.0'],
      ['Base URL', address],
      ['Token Key', token],
    ],
  },
  google: {
    title: 'Google Workspace',
    place: 'Google Workspace, under Apps > Web and mobile apps > your application > Auto-provisioning',
    fields: [
      ['Access token', token],
      ['Endpoint URL', address],
    ],
  },
  aws: {
    title: 'clients of the AWS IAM Identity Center SCIM API',
    place: 'the client, in the place of the values that IAM Identity Center shows',
    fields: [
      ['SCIM endpoint', address],
      ['Access token', token],
    ],
  },
  github: {
    title: "clients of GitHub's SCIM API",
    place: "the client, in the place of GitHub's root URL and personal access token",
    fields: [
      ['Root URL', address],
      ['Token', token],
    ],
  },
  slack: {
    title: "clients of Slack's SCIM API",
    place: "the client, in the place of Slack's base URL and OAuth token",
    fields: [
      ['Base URL', address],
      ['Token', token],
    ],
  },
  generic: {
    title: 'any other SCIM client',
    place: 'the client',
    fields: [
      ['Base URL', address],
      ['Bearer token', token],
    ],
  },
} as const satisfies Record<string, ScimClientSetup>

export type ScimClientName = keyof typeof scimClientSetups
export const scimClientNames = Object.keys(scimClientSetups) as ScimClientName[]

const scimPath = ({ client, tenant }: Pick<TemplateValues, 'client' | 'tenant'>): string =>
  tenant === undefined ? `/scim/${client}` : defaultTenantPath(tenant)

/** The Secret of the token or its hash. */
const tokenSecret = (client: ScimClientName) => ({ name: `scim-${client}`, key: 'token' }) as const

/** A name in file names, addresses and objects. */
function readTenant(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const problem = tenantNameProblem(text)
  if (problem !== undefined) throw new WrongUsage(`--tenant ${problem}`)
  return text
}

function fieldsOf(client: ScimClientName, at: { readonly address: string; readonly token: string }) {
  const { fields }: ScimClientSetup = scimClientSetups[client]
  return fields.map(
    ([label, value]) => [label, value.replace(address, () => at.address).replace(token, () => at.token)] as const,
  )
}

export const scimInit = defineCommand({
  name: 'scim init',
  about: `Write the configuration of a SCIM gateway for an identity provider, with a new token, and print what to enter in the
provider. With --tenant, the gateway, its users and its tokens are those of one tenant. Existing files are never overwritten.`,
  usage: '--client NAME --url URL [--tenant NAME] [--out DIR]',
  options: {
    client: { value: 'NAME', about: scimClientNames.join(', ') },
    url: { value: 'URL', about: 'Address at which the provider reaches the gateway, such as https://idm.example.com' },
    tenant: {
      value: 'NAME',
      about: 'Tenant, with users of its own at /tenants/NAME/scim; its tokens are those of "gatehouse scim token"',
    },
    out: {
      value: 'DIR',
      default: 'config',
      about: 'Configuration folder, which can have configurations of other providers',
    },
    ...outputOption,
  },
  examples: [
    'gatehouse scim init --client entra --url https://idm.example.com',
    'gatehouse scim init --client okta --tenant acme --url https://idm.example.com',
  ],
  run: async (values, _, io) => {
    const { out } = values
    const client = scimClientNames.find((known) => known === values.client)
    if (client === undefined) {
      const given = values.client === undefined ? '' : `, not "${values.client}"`
      throw new WrongUsage(`--client must be one of ${scimClientNames.join(', ')}${given}`)
    }
    const url = readUrl(values.url)
    if (typeof url === 'string') throw new WrongUsage(`--url: ${url}`)
    const tenant = readTenant(values.tenant)
    const template = { client, tenant, host: url.hostname, origin: url.origin }
    const address = url.origin + scimPath(template)
    if (tenant !== undefined) {
      const yaml = join(out, `${tenant}.yaml`)
      await write({ yaml }, scimClientYaml(template))
      printTenant({ client, tenant, address, port: url.port, yaml, out }, io)
      return
    }
    // Letters and digits only, which every provider accepts.
    const token = randomBytes(32).toString('hex')
    const secret = tokenSecret(client)
    const files = { yaml: join(out, `${client}.yaml`), token: join(out, 'secrets', secret.name, secret.key) }
    await write(files, scimClientYaml(template), token)
    print({ client, address, port: url.port, token, files, out }, io)
  },
})

/** The URL, or what is wrong with it. */
function readUrl(text: string | undefined): URL | string {
  const example = 'use the address at which the client reaches the gateway, such as https://idm.example.com'
  if (text === undefined) return `required; ${example}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return `"${text}" is not a URL; ${example}`
  if (url.protocol !== 'https:') return `must start with https://, because every call sends the token; ${example}`
  if (url.username !== '' || url.password !== '') return `must not contain a user or password; ${example}`
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    return `must end after the host and port, because the command chooses the path; ${example}`
  }
  if (!/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(url.hostname)) return `needs a host name; ${example}`
  return url
}

interface Files {
  readonly yaml: string
  readonly token: string
}

/** Writes both files or none; without a token, only the first. Throws an Error if one of them exists, or the folder is a file. */
async function write(files: Pick<Files, 'yaml'> & Partial<Files>, yaml: string, token = ''): Promise<void> {
  const found = [files.yaml, files.token ?? files.yaml].find((file) => existsSync(file))
  if (found !== undefined) {
    throw new Error(`${found} already exists, so nothing was written. Choose another --out, or move the file away.`)
  }
  const folder = dirname(files.yaml)
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new Error(`--out: ${folder} is not a folder, so nothing was written. Choose a folder or an unused name.`)
  }
  await mkdir(folder, { recursive: true })
  if (files.token === undefined) return await writeFile(files.yaml, yaml, { flag: 'wx' })
  await mkdir(dirname(files.token), { recursive: true, mode: 0o700 })
  await writeFile(files.token, `sha256:${hash('sha256', token, 'hex')}\n`, { flag: 'wx', mode: 0o600 })
  try {
    await writeFile(files.yaml, yaml, { flag: 'wx' })
  } catch (error) {
    await rm(files.token)
    throw error
  }
}

interface Written {
  readonly client: ScimClientName
  readonly address: string
  /** Empty for the default. */
  readonly port: string
  readonly token: string
  readonly files: Files
  readonly out: string
}

function print({ client, address, port, token, files, out }: Written, io: CommandOutput): void {
  const { title, place } = scimClientSetups[client]
  const fields = fieldsOf(client, { address, token })
  const width = Math.max(...fields.map(([label]) => label.length))
  const lines = [
    `Wrote ${files.yaml}: the gateway for ${title}, at ${address}`,
    `Wrote ${files.token}: the SHA-256 of the token`,
    '',
    `Enter in ${place}:`,
    ...fields.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`),
    '',
    'Copy the token now: it is not stored anywhere. It does not expire. To replace it, add a line with a new token to',
    `${files.token}, enter it in the client, and then remove the old line.`,
    '',
    'Next:',
    `  ${commandName()} check --config ${quoted(out)}`,
    ...startLines(out, port),
  ]
  for (const line of lines) io.stdout(line)
  io.result({ client, address, token, files, enter: Object.fromEntries(fields) })
}

interface WrittenTenant extends Pick<Written, 'client' | 'address' | 'port' | 'out'> {
  readonly tenant: string
  readonly yaml: string
}

function printTenant({ client, tenant, address, port, yaml, out }: WrittenTenant, io: CommandOutput): void {
  const { place } = scimClientSetups[client]
  const fields = fieldsOf(client, { address, token: 'the printed token' })
  const width = Math.max(...fields.map(([label]) => label.length))
  for (const line of [
    `Wrote ${yaml}: the gateway of ${tenant}, at ${address}`,
    '',
    'Next:',
    `  ${commandName()} check --config ${quoted(out)}`,
    ...startLines(out, port),
    'With --data or --database of the gateway, create a token, which expires in a year:',
    `  ${commandName()} scim token create --client ${tenant}`,
    '',
    `Enter in ${place}:`,
    ...fields.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`),
  ])
    io.stdout(line)
  io.result({ client, tenant, address, files: { yaml }, enter: Object.fromEntries(fields) })
}

function startLines(out: string, port: string): string[] {
  const serve = `  ${commandName()} serve`
  const folder = join(out, '..')
  if (basename(resolve(out)) === 'config' && existsSync(join(folder, 'gatehouse.env'))) {
    const { loadSecrets, serving } = folderCommands(folder, port)
    return [
      'A running gateway of this folder serves it within seconds. To start one:',
      `  ${loadSecrets}`,
      `${serve} ${serving}`,
    ]
  }
  const config = `--config ${quoted(out)}`
  return [
    `${serve} ${config} --listen 0.0.0.0:${port === '' ? '443' : port} --tls-cert CERTIFICATE.pem --tls-key KEY.pem`,
    'or, behind a proxy that terminates TLS, keeps the Host header and sends X-Forwarded-Proto:',
    `${serve} ${config} --listen 0.0.0.0:8080 --trusted-proxy ADDRESS`,
  ]
}

interface TemplateValues {
  readonly client: ScimClientName
  readonly tenant?: string | undefined
  /** The host name that the provider calls, without a port. */
  readonly host: string
  /** Scheme, name and port. */
  readonly origin: string
}

/** The configuration for one client or tenant. Each name contains its name, so a folder can have several such files. */
export function scimClientYaml({ client, tenant, host, origin }: TemplateValues): string {
  const { title }: ScimClientSetup = scimClientSetups[client]
  const name = tenant ?? client
  const NAME = name.toUpperCase().replaceAll('-', '_')
  const path = scimPath({ client, tenant })
  const head = fillTemplate(new URL('./templates/scim-client.yaml', import.meta.url), {
    client,
    NAME,
    title,
    host,
    origin,
    path,
    ...(tenant === undefined ? fileTokens(name, NAME) : databaseTokens(name)),
  })
  const gateway = scimGatewayYaml({
    name,
    host: `#[${NAME}_HOST]`,
    path,
    profile: client === 'generic' ? 'tolerant' : client,
    tokens: tenant === undefined ? 'secret' : 'database',
  })
  return `${head}---\n${gateway}`
}

const fileTokens = (name: string, NAME: string) => ({
  option: '',
  tokens: [
    `# The command has created a token, and secrets/scim-${name}/token beside this file with its SHA-256. To replace the token, add a line with a`,
    '# new one there, enter it in the client, and then remove the old line. Without that file, the tokens are in the key token of the Secret',
    `# scim-${name} in the cluster, or in the environment variable SCIM_${NAME}_TOKEN.`,
  ],
})

const databaseTokens = (name: string) => ({
  option: ` --tenant ${name}`,
  tokens: [`# Its tokens are in the database: gatehouse scim token create --client ${name}`],
})
