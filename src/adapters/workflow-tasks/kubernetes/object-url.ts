import { renderName, renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { ClusterResource } from '#protocols/kubernetes/cluster.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'

/** The path of an object, or of a selection of objects, in which namespace, name and selector may contain `$key$`. */
export interface ObjectUrl {
  /** Undefined for all objects that the labels select. */
  readonly name: Template | undefined
  /** Throws UNPROCESSABLE if a value is missing, and BAD_REQUEST if it can't be part of a label selector. */
  render(context: Pick<TaskContext, 'request' | 'user'>): ObjectPlace
}

export interface ObjectPlace {
  readonly resource: ClusterResource
  readonly name?: string | undefined
  /** Only without a name. */
  readonly labels?: string | undefined
}

/** Throws an Error that says what is wrong. `$key$` can't choose the kind, and can't add segments to the path. */
export function parseObjectUrl(text: string): ObjectUrl {
  const [path = '', query, ...others] = text.trim().split('?')
  if (others.length > 0) throw new Error(`"${text}" has more than one "?"`)
  const parts = path.replace(/\/$/, '').split('/').slice(1).map(readSegment)
  const isCore = parts[0]?.text === 'api'
  if (!text.startsWith('/') || (!isCore && parts[0]?.text !== 'apis')) {
    throw new Error(`"${text}" is not the path of an object, such as /api/v1/namespaces/NAME`)
  }
  const [group, version] = isCore ? ['', parts[1]] : [fixed(parts[1], text), parts[2]]
  const rest = parts.slice(isCore ? 2 : 3)
  const isNamespaced = rest.length > 2
  if (rest.length === 0 || rest.length > 4 || (isNamespaced && rest[0]?.text !== 'namespaces')) {
    throw new Error(`"${text}" is not the path of an object; subresources are not supported`)
  }
  const namespace = isNamespaced ? rest[1] : undefined
  const kind = { group, version: fixed(version, text), plural: fixed(rest[isNamespaced ? 2 : 0], text) }
  const name = rest[isNamespaced ? 3 : 1]
  const labels = readSelector(query, name !== undefined, text)
  return {
    name,
    render: (context) => {
      const place = namespace === undefined ? {} : { namespace: renderName(namespace, context, 'Kubernetes object') }
      return {
        resource: { ...kind, ...place },
        name: name === undefined ? undefined : renderName(name, context, 'Kubernetes object'),
        labels: labels === undefined ? undefined : renderSelector(labels, context),
      }
    },
  }
}

function readSegment(text: string): Template {
  const segment = parseTemplate(decodeURIComponent(text), { keys: true, attributes: false })
  if (segment.text === '') throw new Error('the path has an empty part')
  return segment
}

function fixed(part: Template | undefined, text: string): string {
  if (part === undefined) throw new Error(`"${text}" is not the path of an object`)
  if (part.keys.length === 0) return part.text
  throw new Error(`"${part.text}" must be a fixed text: a request must not choose the kind of an object`)
}

function readSelector(query: string | undefined, hasName: boolean, text: string): Template | undefined {
  const [name, value, ...others] = (query ?? '').split('=')
  const selector = others.length > 0 ? [value, ...others].join('=') : value
  const isSelector = name === 'labelSelector' && selector !== undefined && selector !== '' && !selector.includes('&')
  if (query === undefined && hasName) return undefined
  if (hasName) throw new Error(`"?${query}" is not supported after the name of an object`)
  if (!isSelector) {
    throw new Error(`"${text}" names all objects of a kind; add the name of one, or ?labelSelector=NAME=VALUE`)
  }
  return parseTemplate(decodeURIComponent(selector), { keys: true, attributes: false })
}

/** A missing value is an error, since the rest of the selector would select other objects. */
function renderSelector(labels: Template, context: Pick<TaskContext, 'request' | 'user'>): string {
  renderName(labels, context, 'Kubernetes object')
  return renderTask(labels, context, labelValue)
}

/** Kubernetes' rule for label values; anything else could change what the selector selects. */
function labelValue(value: string): string {
  if (/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(value)) return value
  throw new GatewayError('BAD_REQUEST', `${JSON.stringify(value.slice(0, 100))} is not the value of a label`)
}
