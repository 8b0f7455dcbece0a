import { type ApiDocument, type Operation, record } from './api-document.ts'
import { schemaExample } from './schema-example.ts'

/**
 * A command for a POSIX shell that calls the operation. Credentials, parts of the path and required parameters are
 * variables, which the user sets: `$TOKEN`, `$SESSION`, `$ID`.
 */
export function curlCommand({ servers, credentials, schemas }: ApiDocument, operation: Operation): string {
  const { method, path, body } = operation
  const address = `${inDoubleQuotes(servers[0] ?? '')}${pathWithVariables(path)}${queryWithVariables(operation)}`
  const [credential] = credentials ?? []
  const lines = [`curl${method === 'GET' ? '' : ` -X ${method}`} "${address}"`]
  if (credential?.kind === 'bearer') lines.push('-H "Authorization: Bearer $TOKEN"')
  if (credential?.kind === 'cookie') {
    lines.push(`-b "${inDoubleQuotes(credential.name)}=$SESSION"`)
    if (method !== 'GET') lines.push('-H "X-Requested-With: curl"')
  }
  if (body !== undefined) {
    const example = schemaExample(body.schema, schemas, { brief: true })
    if (body.type === 'application/x-www-form-urlencoded') {
      for (const [name, value] of Object.entries(record(example))) {
        lines.push(`--data-urlencode ${inSingleQuotes(`${name}=${String(value)}`)}`)
      }
    } else {
      lines.push(`-H ${inSingleQuotes(`Content-Type: ${body.type}`)}`, `-d ${inSingleQuotes(JSON.stringify(example))}`)
    }
  }
  return lines.join(' \\\n  ')
}

/** The variables of the command besides the credential, such as `$ORG_ID`. */
export function commandVariables(operation: Operation): readonly string[] {
  const inPath = Array.from(operation.path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name)
  return [...inPath, ...requiredInQuery(operation)].map((name) => `$${variable(name)}`)
}

const pathWithVariables = (path: string): string =>
  path
    .split(/(\{\w+\})/)
    .map((part) => (/^\{\w+\}$/.test(part) ? `$${variable(part.slice(1, -1))}` : inDoubleQuotes(part)))
    .join('')

const requiredInQuery = ({ parameters }: Operation): readonly string[] =>
  parameters.filter(({ place, required }) => place === 'query' && required).map(({ name }) => name)

function queryWithVariables(operation: Operation): string {
  const pairs = requiredInQuery(operation).map(
    (name) => `${inDoubleQuotes(encodeURIComponent(name))}=$${variable(name)}`,
  )
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

/** `orgId` is `ORG_ID`. */
const variable = (name: string): string =>
  name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replace(/\W/g, '_')
    .toUpperCase()

const inDoubleQuotes = (text: string): string => text.replace(/["\\$`]/g, '\\$&')

const inSingleQuotes = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
