-- Starts `citeloom lsp` for texts that can cite; everything else is in the server.
local M = {}
local clients = {} -- ids by root folder

M.options = {
  cmd = { "citeloom", "lsp" },
  filetypes = { "tex", "plaintex", "markdown", "pandoc", "quarto", "typst", "org" },
  init_options = vim.empty_dict(),
}

local function root_of(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local folder = file ~= "" and vim.fn.fnamemodify(file, ":p:h") or vim.fn.getcwd()
  local home = vim.fn.finddir(".citeloom", vim.fn.escape(folder, " ,;") .. ";")
  return home ~= "" and vim.fn.fnamemodify(home, ":p:h:h") or folder
end

function M.start(buffer)
  local root = root_of(buffer)
  if not clients[root] or vim.lsp.get_client_by_id(clients[root]) == nil then
    clients[root] = vim.lsp.start_client({
      name = "citeloom",
      cmd = M.options.cmd,
      cmd_cwd = root,
      root_dir = root,
      init_options = M.options.init_options,
      on_attach = M.options.on_attach,
      capabilities = M.options.capabilities,
    })
  end
  if clients[root] then
    vim.lsp.buf_attach_client(buffer, clients[root])
    vim.bo[buffer].omnifunc = "v:lua.require'citeloom'.omnifunc"
  end
end

local offered = {}

-- Neovim's own function leaves out what does not begin with the letters that were typed: title words, other case.
function M.omnifunc(find_start)
  if find_start == 0 then
    return { words = offered, refresh = "always" }
  end
  offered = {}
  local start
  local params = vim.lsp.util.make_position_params(0, "utf-16")
  local line, own = vim.api.nvim_get_current_line(), clients[root_of(0)]
  for id, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/completion", params, 3000) or {}) do
    for _, item in ipairs(id == own and answer.result and answer.result.items or {}) do
      start = vim.str_byteindex(line, item.textEdit.range.start.character, true)
      offered[#offered + 1] = {
        word = item.textEdit.newText,
        menu = item.detail,
        info = item.documentation and item.documentation.value,
      }
    end
  end
  return start or -3 -- nothing to complete
end

function M.check()
  vim.lsp.buf_request(0, "workspace/executeCommand", {
    command = "citeloom.check",
    arguments = { vim.uri_from_bufnr(0) },
  }, function(_, summary)
    if summary and summary ~= vim.NIL then
      vim.notify("Citeloom: " .. summary)
    end
  end)
end

function M.setup(options)
  M.options = vim.tbl_extend("force", M.options, options or {})
  local group = vim.api.nvim_create_augroup("citeloom", { clear = true })
  for suffix, name in pairs({ qmd = "quarto", typ = "typst" }) do -- which older versions do not know
    vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
      group = group,
      pattern = "*." .. suffix,
      callback = function()
        if vim.bo.filetype ~= name then
          vim.bo.filetype = name
        end
      end,
    })
  end
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = M.options.filetypes,
    callback = function(event)
      M.start(event.buf)
    end,
  })
  vim.api.nvim_create_user_command("CiteloomCheck", M.check, { desc = "Check this text with the chat model" })
end

return M
