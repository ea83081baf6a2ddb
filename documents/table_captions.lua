-- Writes the caption of a table as a paragraph above it, "Table: ...", which GitHub's markdown has no other place for.

local function led(blocks)
  local first = blocks[1]
  if first == nil or not (first.t == "Plain" or first.t == "Para") then
    return blocks
  end
  if not pandoc.utils.stringify(first):match("^%s*[Tt][Aa][Bb]") then
    first.content:insert(1, pandoc.Space())
    first.content:insert(1, pandoc.Str("Table:"))
  end
  blocks[1] = pandoc.Para(first.content)
  return blocks
end

function Table(table)
  local caption = table.caption.long
  if #caption == 0 then
    return nil
  end
  table.caption = {}
  return led(caption) .. { table }
end

-- A JATS table has its caption in a division above it.
function Div(div)
  if not div.classes:includes("table-wrap") then
    return nil
  end
  return div:walk({
    Div = function(inner)
      if inner.classes:includes("caption") then
        return led(inner.content)
      end
    end,
  })
end
