import { type AnyNode, getLineInfo, type Node, type Program, parse } from 'acorn'

/** Throws an Error with the line when the text is no JavaScript of that form. */
export function parseScript(text: string, form: 'script' | 'module'): Program {
  try {
    return parse(text, { ecmaVersion: 'latest', sourceType: form, allowHashBang: true })
  } catch (cause) {
    if (cause instanceof RangeError) throw new Error('is nested too deeply', { cause })
    throw cause
  }
}

/** Where the node stands in the text it was parsed from. */
export const lineOf = (node: Node, text: string): number => getLineInfo(text, node.start).line

/** The nodes directly below, in the order of the text. */
export function childrenOf(node: AnyNode): AnyNode[] {
  const children: AnyNode[] = []
  for (const field of Object.values(node) as unknown[]) {
    if (isNode(field)) children.push(field)
    else if (Array.isArray(field)) for (const item of field) if (isNode(item)) children.push(item)
  }
  return children
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

export type FunctionNode = Extract<
  AnyNode,
  { type: 'FunctionDeclaration' | 'FunctionExpression' | 'ArrowFunctionExpression' }
>

export const isFunction = (node: AnyNode): node is FunctionNode =>
  node.type === 'FunctionDeclaration' || node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression'
