import { Anchor, Code, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { isolated } from '../app/isolated.ts'
import { type Block, type Inline, markdownBlocks } from './markdown-blocks.ts'
import { safeAddress } from './safe-address.ts'

/** A configured text. It becomes elements, never HTML. */
export function Markdown({ text }: { readonly text: string }) {
  return <div className="markdown">{markdownBlocks(text).map(shownBlock)}</div>
}

function shownBlock(block: Block, key: number): ReactNode {
  if (block.kind === 'paragraph') {
    return (
      <Text key={key} mb="xs">
        {block.content.map(shownInline)}
      </Text>
    )
  }
  const List = block.kind
  return (
    <List key={key}>
      {block.items.map((content, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the text does not change while it is shown
        <li key={i}>{content.map(shownInline)}</li>
      ))}
    </List>
  )
}

function shownInline(inline: Inline, key: number): ReactNode {
  if (typeof inline === 'string') return isolated(inline)
  if (inline.kind === 'code') return <Code key={key}>{isolated(inline.text)}</Code>
  const content = inline.content.map(shownInline)
  if (inline.kind !== 'link') {
    const Mark = inline.kind
    return <Mark key={key}>{content}</Mark>
  }
  const href = safeAddress(inline.address, window.location.href)
  if (href === undefined) return <span key={key}>{content}</span>
  return (
    <Anchor key={key} href={href} target="_blank" rel="noreferrer noopener">
      {content}
    </Anchor>
  )
}
