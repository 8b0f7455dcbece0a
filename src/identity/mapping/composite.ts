import { firstValueOf, JsonDocument, type MappedValue, type MappingSource } from '#identity/mapping/mapped-value.ts'
import { parseTextTemplate, readJsonTemplate, type TemplateNode } from '#identity/mapping/template.ts'
import type { JsonValue } from '#kernel/json.ts'

/** A template over several attributes, parsed once. */
export interface Composite {
  readonly attributes: readonly string[]
  /** No values when none of its attributes has one. */
  evaluate(source: MappingSource): MappedValue
}

const nothing: readonly string[] = []

/** A text that starts with `{` or `[` is a JSON template, any other a text template. Throws an Error with the reason. */
export function parseComposite(text: string): Composite {
  if (!/^\s*[{[]/.test(text)) {
    const template = parseTextTemplate(text)
    return {
      attributes: template.attributes,
      evaluate: (source) => {
        const value = template.render(source)
        return value === undefined ? nothing : [value]
      },
    }
  }
  const template = parseJsonTemplate(text)
  return {
    attributes: template.attributes,
    evaluate: (source) => {
      const value = template.render(source)
      return value === undefined ? nothing : new JsonDocument(value)
    },
  }
}

/**
 * JSON with placeholders for attribute values, parsed before any value is known, so a value can't change its
 * structure.
 */
interface JsonTemplate {
  /** Attributes it reads; none for a constant document. */
  readonly attributes: readonly string[]
  /**
   * Undefined if none of its attributes has a value. A string whose attributes all lack a value is left out, as is
   * an object or list that this empties, and a list element none of whose attributes has a value. A bare
   * placeholder becomes true, false or a number if the value reads as one, and a string otherwise.
   */
  render(source: MappingSource): JsonValue | undefined
}

/** Throws an Error that says what is wrong and where. */
function parseJsonTemplate(text: string): JsonTemplate {
  const root = readJsonTemplate(text)
  const attributes = [...new Set(attributesOf(root))]
  if (root.kind === 'constant') return { attributes, render: () => root.value }
  return {
    attributes,
    render: (source) => {
      const rendering: Rendering = { source, found: false }
      const value = render(root, rendering)
      return rendering.found ? value : undefined
    },
  }
}

interface Rendering {
  readonly source: MappingSource
  /** Whether any attribute had a value so far. */
  found: boolean
}

function render(node: TemplateNode, rendering: Rendering): JsonValue | undefined {
  switch (node.kind) {
    case 'constant':
      return node.value
    case 'text': {
      const text = node.template.render(rendering.source)
      if (text !== undefined) rendering.found = true
      return text
    }
    case 'bare': {
      const text = firstValueOf(rendering.source, node.attribute)
      if (text === undefined) return undefined
      rendering.found = true
      return bareValue(text)
    }
    case 'object':
      return renderObject(node.members, rendering)
    case 'array':
      return renderArray(node.elements, rendering)
  }
}

function renderObject(
  members: readonly (readonly [string, TemplateNode])[],
  rendering: Rendering,
): JsonValue | undefined {
  const object: Record<string, JsonValue> = {}
  let size = 0
  for (const [name, node] of members) {
    const value = render(node, rendering)
    if (value === undefined) continue
    object[name] = value
    size++
  }
  return size === 0 ? undefined : object
}

function renderArray(elements: readonly TemplateNode[], rendering: Rendering): JsonValue | undefined {
  const array: JsonValue[] = []
  const foundBefore = rendering.found
  let foundAny = foundBefore
  for (const node of elements) {
    rendering.found = false
    const value = render(node, rendering)
    if (value !== undefined && (rendering.found || node.kind === 'constant')) array.push(value)
    foundAny ||= rendering.found
  }
  rendering.found = foundAny
  return array.length === 0 ? undefined : array
}

const numberForm = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** A whole number too large to be exact stays text. */
function bareValue(text: string): JsonValue {
  if (text === 'true') return true
  if (text === 'false') return false
  if (text.length > 32 || !numberForm.test(text)) return text
  const number = Number(text)
  const exact = Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number)
  return exact ? number : text
}

function attributesOf(node: TemplateNode): readonly string[] {
  switch (node.kind) {
    case 'constant':
      return []
    case 'text':
      return node.template.attributes
    case 'bare':
      return [node.attribute]
    case 'object':
      return node.members.flatMap(([, member]) => attributesOf(member))
    case 'array':
      return node.elements.flatMap(attributesOf)
  }
}
