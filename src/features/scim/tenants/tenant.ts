import { type StoredObjects, storedPlace } from '#config/sources/stored-objects.ts'
import { type ClientName, clientNames } from '#features/scim/contract/client-names.ts'
import { GatewayError } from '#kernel/errors.ts'
import { scimGatewayYaml } from './scim-gateway-yaml.ts'

/** A SCIM gateway with users of its own, which an operator has added. Its client has its name. */
export interface Tenant {
  readonly name: string
  /** The host that its client calls, without a port. */
  readonly host: string
  readonly path: string
  readonly profile: ClientName
  /** Changes with each change. */
  readonly version: number
  readonly created: Date
  readonly createdBy: string
  /** Since when no caller may pass. */
  readonly disabled?: Date
  readonly disabledBy?: string
}

export const defaultTenantPath = (name: string): string => `/tenants/${name}/scim`

/** A name in addresses, objects and file names. */
export function tenantNameProblem(name: string): string | undefined {
  if (!/^[a-z][a-z0-9-]{0,40}$/.test(name)) {
    return 'must be up to 41 lower-case letters, digits and dashes, and begin with a letter'
  }
  // `gatehouse scim init` names the objects of these clients so.
  const isClient = name === 'generic' || clientNames.some((client) => client === name)
  return isClient ? `cannot be ${name}, which is the name of a client. Choose another name` : undefined
}

/** No page of the portal and no login is below these, and no other spelling leads to the same address. */
const pathForm = /^\/(?:scim|tenants)(?:\/[a-z0-9][a-z0-9-]{0,62}){1,4}$/

const pathProblem = (path: string): string | undefined =>
  pathForm.test(path)
    ? undefined
    : 'must be /scim/ or /tenants/ with up to four parts of lower-case letters, digits and dashes, such as /tenants/acme/scim'

const hostForm = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

const hostProblem = (host: string): string | undefined =>
  hostForm.test(host) ? undefined : 'must be a host name in lower case, without scheme and port'

/** Throws BAD_REQUEST for a name or an address that no tenant can have. */
export function requireUsable({ name, host, path }: Pick<Tenant, 'name' | 'host' | 'path'>): void {
  for (const [what, problem] of [
    ['name', tenantNameProblem(name)],
    ['host', hostProblem(host)],
    ['path', pathProblem(path)],
  ] as const) {
    if (problem === undefined) continue
    const publicText = `The ${what} ${problem}.`
    throw new GatewayError('BAD_REQUEST', publicText, { publicText })
  }
}

/** Whether an address is the other, or below it. */
export const overlaps = (path: string, other: string): boolean =>
  `${path}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${path}/`)

export const tenantDirectory = (name: string): string => `scim-tenant/${name}`

/** The owner of its objects in the configuration, which names the version that they are of. */
export const tenantOwner = ({ name, version }: Pick<Tenant, 'name' | 'version'>): string => `tenant/${name}@${version}`

/** What it is in the configuration. */
export function tenantObjects(tenant: Omit<Tenant, 'created'>): StoredObjects {
  const { name, host, path, profile, disabled } = tenant
  const owner = tenantOwner(tenant)
  const text = scimGatewayYaml({
    name,
    host,
    path,
    profile,
    tokens: 'database',
    directory: tenantDirectory(name),
    isDisabled: disabled !== undefined,
  })
  const files = text.split(/^---\n/m).map((document) => {
    const { kind = '', object = '' } =
      /^kind: (?<kind>\w+)\n(?:.*\n)*? {2}name: (?<object>.*)$/m.exec(document)?.groups ?? {}
    return {
      kind,
      name: object,
      file: { name: storedPlace(owner, `${kind}/${object}`), text: document, isObject: true },
    }
  })
  return { owner, files }
}
