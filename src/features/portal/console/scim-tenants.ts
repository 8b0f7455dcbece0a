import * as z from 'zod'
import { isStored, storedPlace } from '#config/sources/stored-objects.ts'
import type { ConfigurationFacts } from '#features/portal/access/configuration-access.ts'
import {
  type RemovedScimTenant,
  type ScimTenantView,
  scimTenant,
  scimTenantDetails,
} from '#features/portal/contract/console-tokens.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { clientNames } from '#features/scim/contract/client-names.ts'
import {
  defaultTenantPath,
  overlaps,
  requireUsable,
  type Tenant,
  tenantDirectory,
  tenantObjects,
  tenantOwner,
} from '#features/scim/tenants/tenant.ts'
import { tenantAudit } from '#features/scim/tenants/tenant-audit.ts'
import type { NewTenant } from '#features/scim/tenants/tenant-store.ts'
import { GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { pageByName } from './named-page.ts'

const maxBodyBytes = 16 * 1024

export const newTenantSchema = z.strictObject({
  name: storableText(41).min(1).describe('Lower-case letters, digits and dashes'),
  profile: z.enum(clientNames).describe('The client whose habits the gateway follows').default('tolerant'),
  path: storableText(300).describe('Below `/scim/` or `/tenants/`; absent: `/tenants/NAME/scim`').optional(),
  host: storableText(255).describe('The host that the client calls; absent: that of this request').optional(),
})
export const tenantChangeSchema = z.strictObject({
  version: z.int().min(1).describe('What the caller saw; a tenant with another one is not changed'),
  reason: reasonText,
})

const failures = {
  '403': 'The caller is not an operator',
  '412': 'The tenant is not in the version that the caller saw',
}
const changed = { body: 'ScimTenantChange', answer: 'ScimTenant', failures }

/** SCIM gateways that operators add without writing YAML. */
export const tenantOperations = {
  listScimTenants: {
    summary: 'The SCIM tenants that operators have added',
    query: { q: 'A part of the name or of the path', ...listQuery },
    answer: 'ScimTenants',
    handle: listTenants,
  },
  createScimTenant: {
    summary: 'Adds a SCIM gateway with users of its own; gateways serve it within seconds',
    body: 'NewScimTenant',
    answers: { '201': { description: 'The tenant', schema: 'ScimTenant' } },
    failures: {
      '403': 'The caller is not an operator',
      '409': 'The name or the address is taken, by a tenant or by the configuration, or there are too many tenants',
    },
    handle: createTenant,
  },
  getScimTenant: {
    summary: 'One SCIM tenant, with the numbers of its users and groups',
    answer: 'ScimTenantDetails',
    handle: showTenant,
  },
  disableScimTenant: {
    summary: 'Refuses all calls of the tenant; its users and tokens stay',
    ...changed,
    handle: change(true),
  },
  enableScimTenant: { summary: 'Serves the tenant again', ...changed, handle: change(false) },
  removeScimTenant: {
    summary: 'Deletes a tenant that is disabled and has no users and groups, and revokes its tokens',
    body: 'ScimTenantChange',
    answer: 'RemovedScimTenant',
    failures: { ...failures, '409': 'The tenant is not disabled, or has users or groups' },
    handle: removeTenant,
  },
} satisfies OperationTable<MainParts>

async function listTenants(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const { host } = parts
  return await answerList(exchange, ['q'], ({ q: [q = ''] }) => ({
    name: 'tenants',
    file: 'scim-tenants',
    read: async (page) => {
      const word = q.trim().toLowerCase()
      const tenants = await host.scimClients.tenants.list()
      const found = tenants.filter(({ name, path }) => name.includes(word) || path.includes(word))
      const { rows, next } = pageByName(found, page)
      const describe = describing(host.loaded?.describe(), exchange)
      return { rows: rows.map((tenant) => wireForm(scimTenant, describe(tenant))), next }
    },
    columns: {
      name: ({ name }) => name,
      address: ({ address }) => address,
      profile: ({ profile }) => profile,
      state: ({ state }) => state,
      problem: ({ problem }) => problem,
      created: ({ created }) => created,
      createdBy: ({ createdBy }) => createdBy,
      disabled: ({ disabled }) => disabled,
      disabledBy: ({ disabledBy }) => disabledBy,
    },
  }))
}

/** What a tenant is in the configuration of this process. Looks at its objects once for all of them. */
function describing(facts: ConfigurationFacts | undefined, { request }: Pick<Exchange, 'request'>) {
  const ownerOf = (file: string): string => file.split('/', 2).join('/')
  const objects = Map.groupBy(facts?.objects.filter(({ file }) => isStored(file)) ?? [], ({ file }) => ownerOf(file))
  const problems = new Map(facts?.problems.map(({ file, message }) => [file, message]))
  return (tenant: Tenant) => {
    const place = storedPlace(tenantOwner(tenant))
    const own = objects.get(place) ?? []
    const problem = problems.get(place) ?? own.find(({ setAside }) => setAside !== undefined)?.setAside
    const isLoaded = own.length > 0 && own.every(({ loaded }) => loaded)
    const settled = tenant.disabled === undefined ? 'served' : 'disabled'
    const state: ScimTenantView['state'] = problem !== undefined ? 'refused' : isLoaded ? settled : 'pending'
    const origin = tenant.host === request.host ? request.origin : `https://${tenant.host}`
    return { ...tenant, address: `${origin}${tenant.path}`, state, ...(problem === undefined ? {} : { problem }) }
  }
}

async function findTenant({ host }: MainParts, name: string): Promise<Tenant> {
  const tenant = await host.scimClients.tenants.get(name)
  if (tenant !== undefined) return tenant
  throw notFound(`no tenant "${name.slice(0, 80)}"`, 'There is no such tenant.')
}

async function showTenant(parts: MainParts, exchange: Exchange, name = ''): Promise<GatewayResponse> {
  readQuery(exchange.request.query, [])
  const tenant = await findTenant(parts, name)
  const describe = describing(parts.host.loaded?.describe(), exchange)
  return answer(wireForm(scimTenantDetails, { ...describe(tenant), ...(await sizeOf(parts, tenant)) }))
}

async function sizeOf({ host }: MainParts, { name }: Pick<Tenant, 'name'>): Promise<{ users: number; groups: number }> {
  const directory = await host.openUserDirectory({ name: tenantDirectory(name) })
  try {
    const [{ total: users }, { total: groups }] = await Promise.all([
      directory.searchUsers({ offset: 0, limit: 1 }),
      directory.searchGroups({ offset: 0, limit: 1 }),
    ])
    return { users, groups }
  } finally {
    await directory.close()
  }
}

async function createTenant(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  const { host } = parts
  const body = await readJsonBody(request, newTenantSchema, maxBodyBytes)
  const { name, profile, path = defaultTenantPath(name) } = body
  const tenant: NewTenant = { name, profile, path, host: body.host ?? request.host, createdBy: subject.uid }
  requireUsable(tenant)
  requireUnclaimed(parts, tenant)
  const { users, groups } = await sizeOf(parts, tenant)
  if (users + groups > 0) {
    throw refusal(`The database has users or groups of an earlier tenant "${name}". Choose another name.`)
  }
  const by = { requestor: subject.uid, requestId: request.id }
  const added = await host.scimClients.tenants.add(tenant, [tenantAudit('add', ['scimTenant', path], name, by)])
  host.log.info('tenant added by an operator', { tenant: name, path, by: subject.uid })
  return answer(wireForm(scimTenant, describing(host.loaded?.describe(), exchange)(added)), 201)
}

/** Throws CONFLICT if the running configuration has its address, a client of its name, or an object with the name of one of its own. */
function requireUnclaimed({ host }: MainParts, tenant: NewTenant): void {
  const names = new Set(tenantObjects({ ...tenant, version: 1 }).files.map(({ kind, name }) => `${kind}/${name}`))
  const object = host.loaded
    ?.describe()
    .objects.find(({ kind, name, file }) => !isStored(file) && names.has(`${kind}/${name}`))
  if (object !== undefined) {
    throw refusal(`The configuration has ${object.kind} "${object.name}". Choose another name.`)
  }
  if (host.scimClients.named.has(tenant.name)) {
    throw refusal(`The configuration has a client "${tenant.name}". Choose another name.`)
  }
  const url = host.scimClients.urls.find(
    ({ hosts, uri, pattern }) =>
      (hosts.includes('*') || hosts.includes(tenant.host)) &&
      (pattern === undefined
        ? uri !== '/' && overlaps(tenant.path, uri.replace(/\/$/, ''))
        : pattern.matches(tenant.path) || pattern.matches(`${tenant.path}/Users`)),
  )
  if (url !== undefined) throw refusal(`The configuration has a URL at ${url.uri}. Choose another path.`)
}

const refusal = (text: string): GatewayError => new GatewayError('CONFLICT', text, { publicText: text })

function change(isDisabled: boolean) {
  return async (parts: MainParts, exchange: Exchange, name = ''): Promise<GatewayResponse> => {
    await requireOperator(parts, exchange)
    const { request, subject } = exchange
    const { version, reason } = await readJsonBody(request, tenantChangeSchema, maxBodyBytes)
    const by = { requestor: subject.uid, requestId: request.id, reason: reason.trim() }
    const audit = tenantAudit('replace', ['disabled', String(isDisabled)], name, by)
    const { host } = parts
    const tenant = await host.scimClients.tenants.setDisabled({ name, version, by: subject.uid }, isDisabled, [audit])
    host.log.info('tenant changed by an operator', { tenant: name, isDisabled, by: subject.uid })
    return answer(wireForm(scimTenant, describing(host.loaded?.describe(), exchange)(tenant)))
  }
}

async function removeTenant(parts: MainParts, exchange: Exchange, name = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  const { version, reason } = await readJsonBody(request, tenantChangeSchema, maxBodyBytes)
  const { users, groups } = await sizeOf(parts, await findTenant(parts, name))
  if (users + groups > 0) {
    const text = `The tenant has ${users} users and ${groups} groups. Let its client delete them first, or leave the tenant disabled.`
    throw refusal(text)
  }
  const by = { requestor: subject.uid, requestId: request.id, reason: reason.trim() }
  const audit = tenantAudit('delete', ['scimTenant', name], name, by)
  const revokedTokens = await parts.host.scimClients.tenants.remove({ name, version, by: subject.uid }, [audit])
  parts.host.log.info('tenant deleted by an operator', { tenant: name, by: subject.uid })
  return answer({ revokedTokens } satisfies RemovedScimTenant)
}
