import { Group, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect, useRef } from 'react'
import { useConfig } from '../app/config.tsx'
import { isolated } from '../app/isolated.ts'

/** Browsers start reading the first page at its top anyway. */
let isFirst = true

interface PageProps {
  readonly title: string
  readonly intro?: string
  /** Shown beside the title. */
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** A page with its title, which gets the focus when the user comes from another page. */
export function Page({ title, intro, actions, children }: PageProps) {
  const { headerTitle } = useConfig()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${isolated(title)} – ${headerTitle}`
  }, [title, headerTitle])
  useEffect(() => {
    if (!isFirst) heading.current?.focus({ preventScroll: true })
    isFirst = false
  }, [])
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="start" gap="sm">
        <div>
          <Title order={1} size="h2" ref={heading} tabIndex={-1} className="page-title">
            {isolated(title)}
          </Title>
          {intro !== undefined && intro !== '' && <Text c="dimmed">{isolated(intro)}</Text>}
        </div>
        {actions}
      </Group>
      {children}
    </Stack>
  )
}
